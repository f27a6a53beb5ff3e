"""GitHub's API, as far as the bot needs it: statuses, pull requests, comments."""
