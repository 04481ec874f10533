"""Merges of physically different presentations of one table: the workload, bare kernels, the twins, and the product.

merge_workload.py  a table with so many live events, and presentations of it as columns
bare_r3.py         R3 as a kernel with nothing around it
bare_r4.py         R4 likewise
contestants.py     the product, bare kernels, the papers' twins and Cleanse + R1 behind one face
laps.py            contestants that take turns; a lap is a whole run over the workload
"""
