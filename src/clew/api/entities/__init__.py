"""What calls do to the things that their arguments name, as files, sockets, processes; and who holds what of them."""
