"""Pure functions of a history: each answers pass, fail or unknown, with the evidence. Start at ``judge``."""
