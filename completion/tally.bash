# SPDX-License-Identifier: MIT
# Completion of tally(1) in bash. The tool itself says what may follow (tool/complete.h); here is
# what the shell needs to know to show it.

_tally()
{
	local line=${COMP_LINE:0:COMP_POINT} cur prefix candidate desc
	local -a words

	# COMP_WORDS are split at ':' and '=', which are parts of events' names; the line is not.
	read -ra words <<< "$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	cur=${words[-1]}
	# What readline replaces begins behind the last of those.
	prefix=${cur%"${cur##*[:=]}"}
	COMPREPLY=()

	while IFS=$'\t' read -r candidate desc; do
		case $candidate in
		:files)
			compopt -o filenames 2>/dev/null
			while IFS= read -r candidate; do
				COMPREPLY+=("$candidate")
			done < <(compgen -f -- "${cur##*[:=]}")
			;;
		":command "*)
			_tally_command "$((${candidate#:command } + 1))"
			;;
		:nospace)
			compopt -o nospace 2>/dev/null
			;;
		*)
			COMPREPLY+=("${candidate#"$prefix"}")
			;;
		esac
	done < <("${words[0]/#\~/$HOME}" __complete -- "${words[@]:1}" 2>/dev/null)
}

# The command to measure begins at word $1.
_tally_command()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((${#words[@]} - 1 == $1)); then
		while IFS= read -r candidate; do
			COMPREPLY+=("$candidate")
		done < <(compgen -c -- "$cur")
	else
		compopt -o filenames 2>/dev/null
		while IFS= read -r candidate; do
			COMPREPLY+=("$candidate")
		done < <(compgen -f -- "$cur")
	fi
}

complete -F _tally tally
