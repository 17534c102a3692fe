"""What runs stages in Ray's workers, counts what they do, and looks after them."""
