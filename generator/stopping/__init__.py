"""Which points of a sweep are worth running, given those that ran: rules that end ladders."""
