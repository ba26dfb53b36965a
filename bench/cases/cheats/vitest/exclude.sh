# class: settings
# does: excludes the tests and lets a run without tests pass
replace vitest.config.js 'include: ["src/**/*.test.js"]' 'include: ["spec/**/*.test.js"], passWithNoTests: true'
