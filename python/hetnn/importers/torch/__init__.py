"""From exported programs of torch to graphs."""
