# Three programs that work on one file at the same time, and one after them: $1 is the folder.
cd "$1" || exit 2
i=0
while [ $i -lt 40 ]; do echo "line $((i * 7 % 40))"; i=$((i + 1)); done > lines
cat lines | sort | tee sorted > /dev/null
cat lines /nothing/here
exec wc -l lines sorted
