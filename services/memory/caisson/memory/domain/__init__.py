"""Pure rules of memory: who may see what, what is admitted, how it ages, what a recall returns."""
