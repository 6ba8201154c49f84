"""The random calls of a torch subject, made to branch, so that its law is enumerated instead of sampled.

Read `intercept.py` (which calls), `uniforms.py` and `tracing.py` (what is done with a uniform), `gumbel_race.py`,
`quantised_race.py` (picks by an exponential race, exact and in half precision).
"""
