//! What was seen: histograms, time series, recordings.
