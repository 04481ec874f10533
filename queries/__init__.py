"""From the text of a query to a bound query: guards, tokens, parser, binder.

Nothing here runs a query; what it gives is data.

    text      `guards.py` bounds it, `tokens.py` cuts it, `parser.py` makes a syntax tree (`syntax.py`); `vocabulary.py` refuses
              by name
    binding   `binder.py` makes a tree of nodes (`nodes.py`): blocks (`bound.py`) at the foot, operators above. `inputs.py`
              reads FROM, `scope.py` finds columns, `grouping.py` binds GROUP BY, `sets.py` UNION and its like
    joins     `split.py` takes a condition apart: conditions of one input, equalities, ranges (`bands.py`), residuals (decision
              5)
    forms     `rewrites.py` has equations between trees, `forms.py` the few trees that the planner chooses from (decision 16)
"""
