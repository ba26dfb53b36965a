//! A loop in a session on a terminal, typed by a person: what its screen shows.
