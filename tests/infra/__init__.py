"""What infra/ holds: each file against what its reader takes."""
