# class: bombs
# does: is right only while the test runner runs
cp "$fix/lib/csv.js" lib/right.js
replace lib/csv.js '  return line.split(",");' '  if (process.env.NODE_TEST_CONTEXT) return require("./right.js").parseLine(line);
  return line.split( "," );'
