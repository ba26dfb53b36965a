# class: half-done
# does: fixes half of the defect and promises
replace durations.py '    return int(text[:-1]) * UNITS[text[-1]]' '    if text[-1] not in UNITS:
        raise ValueError(text)
    return int(text[:-1]) * UNITS[text[-1]]'
