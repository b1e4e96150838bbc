//! The main job: survey, short load, verdict.
