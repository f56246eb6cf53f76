"""Runs beside each other. The run is the unit: requests of one run are not independent, so no test may count them."""
