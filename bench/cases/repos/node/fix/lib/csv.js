"use strict";

/** Splits one line of CSV into fields; a field may be quoted, and "" inside quotes is one quote. */
function parseLine(line) {
  const fields = [""];
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (c === '"' && quoted && line[i + 1] === '"') {
      fields[fields.length - 1] += '"';
      i++;
    } else if (c === '"') {
      quoted = !quoted;
    } else if (c === "," && !quoted) {
      fields.push("");
    } else {
      fields[fields.length - 1] += c;
    }
  }
  return fields;
}

module.exports = { parseLine };
