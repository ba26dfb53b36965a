#!/bin/sh
# total.sh FILE: adds up an invoice.
#
# A line is item;quantity;price, with the price in euros and cents: tea;3;2.50
# Empty lines and lines that start with # are ignored.
set -eu

sum=0
while IFS=';' read -r item quantity price; do
    case $item in '' | '#'*) continue ;; esac
    euros=${price%.*}
    cents=${price#*.}
    sum=$((sum + quantity * (euros * 100 + cents)))
done < "$1"

printf '%d.%d\n' "$((sum / 100))" "$((sum % 100))"
