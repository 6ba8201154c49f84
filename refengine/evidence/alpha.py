"""The false-alarm rate, in one place: every audit, every bound and the suite of statistical tests derive from it."""

import math

ALPHA = 1e-6  # the probability that a correct subject is accused, in one audit, whenever one looks
NATS = math.log(1 / ALPHA)  # the log evidence that ends an audit at ALPHA
