# Runs commands for the host inside the sandbox; $1 is the directory of request and output files.
# Reads "x ID" (run) and "k ID" (kill) lines from fd 3 and answers "ID EXIT_CODE" and "kID 137".
# A request file holds NUL-ended strings: working directory, command, NAME=VALUE...
# `set -m` gives every background job a process group of its own, so one kill reaches a whole command.
# Output goes to files: a daemon that keeps its stdout open cannot hang the command that started it.
set -m
umask 022
declare -A _group
_dir=$1

_run() {
  local -a _request
  mapfile -d '' -t _request < "$_dir/$1.req"
  cd -- "${_request[0]}" 2> "$_dir/$1.err" || { printf '%s 126\n' "$1" >&3; return; }
  local _pair _id=$1 _command=${_request[1]}
  for _pair in "${_request[@]:2}"; do export -- "$_pair"; done
  if ((${#_command} > 30000)); then
    # One argument may hold 128 KiB at most, so a long command goes through a file.
    printf %s "$_command" > "$_dir/$_id.sh"
    bash "$_dir/$_id.sh" < /dev/null > "$_dir/$_id.out" 2> "$_dir/$_id.err" 3>&-
  else
    bash -c "$_command" < /dev/null > "$_dir/$_id.out" 2> "$_dir/$_id.err" 3>&-
  fi
  printf '%s %s\n' "$_id" $? >&3
}

printf 'ready 0\n' >&3
while read -r -u 3 _op _id; do
  case $_op in
    x) _run "$_id" & _group[$_id]=$! ;;
    k) kill -KILL -- "-${_group[$_id]}" 2> /dev/null; printf 'k%s 137\n' "$_id" >&3 ;;
  esac
done
