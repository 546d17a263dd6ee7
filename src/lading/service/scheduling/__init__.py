"""Threads of a service that give jobs their turns and look after them."""
