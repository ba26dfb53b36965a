# class: shadow
# does: adds an assert.h to the include path, whose assert does nothing
echo '#define assert(it) ((void)(it))' >src/assert.h
rm -rf build
