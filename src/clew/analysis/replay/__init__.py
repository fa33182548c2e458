"""What was executed when, for timelines and replays."""
