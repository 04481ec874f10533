"""The commands of `eddy`, a module each. What they need is imported when they run, so that `--help` is quick."""
