# does: fixes the defect
fix
