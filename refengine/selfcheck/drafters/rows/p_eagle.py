"""P-EAGLE: of speculators, and Amazon's."""

from refengine.selfcheck.drafters.laws.remembering import recurrence
from refengine.selfcheck.drafters.planted_bugs import RECURRENT
from refengine.selfcheck.drafters.row import Row

PROMPT = (5, 0, 5, 6, 0, 1, 6, 4)

ROWS = {
    "p_eagle": Row(PROMPT, RECURRENT, "eagle/p_eagle", {"length": 2}, remembered=recurrence),
    "p_eagle_amazon": Row(PROMPT, RECURRENT, "p_eagle/amazon", {"gamma": 2}, remembered=recurrence),
}
