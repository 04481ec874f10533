"""The machine below the operators: messages, queues, buffers' strategies, sources, and the clock of every operator."""
