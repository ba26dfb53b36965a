# does: fixes the defects
fix
