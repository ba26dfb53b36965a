# does: fixes the defect in three steps
case $turn in
1) sed -i 's/^"""Durations.*/&\n\nimport re/' durations.py && echo 'I looked at the code.' && exit ;;
2) replace durations.py '    return int(text[:-1])' '    if text[-1] not in UNITS:
        raise ValueError(text)
    return int(text[:-1])' && echo 'Unknown units are refused.' && exit ;;
esac
fix
