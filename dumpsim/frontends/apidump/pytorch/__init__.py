"""The torch side of an API dump; imports torch, which is an extra."""
