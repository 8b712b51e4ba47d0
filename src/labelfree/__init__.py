from labelfree._tally import Tally, tally
