# does: fixes the defect and leaves the submodule alone
fix
