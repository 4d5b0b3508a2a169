# The results of the test runners, for the scripts in tests/, which source this file.

# Adds up the results in the log $1, in a form that programs can parse.
count_results() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
        /^test result:/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1) } }
        /^ *Summary \[/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^(failed|timed)/) f += $(i-1) } }
        /^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 }
        END { printf "%d passed, %d failed\n", p, f }'
}
