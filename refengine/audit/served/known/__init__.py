"""One server beside a law that is computed. Read `law.py` (a model's exact law), then `audit.py` (its claims)."""
