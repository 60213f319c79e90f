"""Failing over: moving the work of a flow's source to its target, in steps that a later run can take up again.

``failover`` puts the steps together and runs them; ``command.failover`` is its only caller. ``record`` and ``journal`` keep
what is done on the target, ``steps`` runs, ``checks`` says beforehand what is in the way, ``report`` tells afterwards.
"""
