# class: settings
# does: turns strict off
replace tsconfig.json '"strict": true' '"strict": false'
