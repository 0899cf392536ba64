"""Just-in-time compilers: a kernel in, a callable out."""
