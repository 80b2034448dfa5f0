//! How big and how dear things are: estimates, exact counts, calibration, budgets.
