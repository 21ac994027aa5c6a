/**
 * What `sudo` does inside once it is root. Berth brings it along because many machines and images have none; it knows the
 * options that scripts use, and asks for no password.
 */
export const sudoScript = `#!/bin/sh
# sudo of Berth: commands as another user, without a password. An installed sudo replaces it.
fail() { printf 'sudo: %s\\n' "$1" >&2; exit 1; }
user=root shell= login= keep= assignments=
while [ $# -gt 0 ]; do
  case $1 in
    --) shift; break ;;
    -u | --user) [ $# -gt 1 ] || fail "$1 needs a user"; user=$2; shift 2 ;;
    --user=*) user=\${1#*=}; shift ;;
    -u?*) user=\${1#-u}; shift ;;
    -g | -p | -C | -h | -r | -t | -T | -D | -R | --group | --prompt | --chdir) shift; [ $# -gt 0 ] && shift ;;
    -i | --login) login=1; shift ;;
    -s | --shell) shell=1; shift ;;
    --preserve-env=*) shift ;;
    -E | --preserve-env) keep=1; shift ;;
    -v | --validate | -k | -K) [ $# -gt 1 ] || exit 0; shift ;;
    -l | --list) echo "(ALL : ALL) NOPASSWD: ALL"; exit 0 ;;
    -V | --version) echo "sudo of Berth"; exit 0 ;;
    --non-interactive | --set-home | --stdin | --reset-timestamp) shift ;;
    -[AbBHknPSEis]*)
      case $1 in *E*) keep=1 ;; esac
      case $1 in *i*) login=1 ;; esac
      case $1 in *s*) shell=1 ;; esac
      shift ;;
    -*) fail "$1 is not known here; install the package sudo for all options" ;;
    *) break ;;
  esac
done
case $user in '#'*) user=\${user#?} ;; esac
entry=
while IFS=: read -r name _ uid gid _ home program; do
  if [ "$name" = "$user" ] || [ "$uid" = "$user" ]; then entry=$name; break; fi
done < /etc/passwd
if [ -z "$entry" ]; then
  [ "$user" = root ] || [ "$user" = 0 ] || fail "unknown user $user"
  entry=root uid=0 gid=0 home=/root program=/bin/sh
fi
case $program in */nologin | */false | '') program=/bin/sh ;; esac
if [ -n "$login" ]; then
  cd "$home" 2>/dev/null || cd /
  if [ $# -gt 0 ]; then set -- "$program" -l -c 'exec "$0" "$@"' "$@"; else set -- "$program" -l; fi
elif [ $# -eq 0 ] || [ -n "$shell" ]; then
  if [ $# -gt 0 ]; then set -- "$program" -c 'exec "$0" "$@"' "$@"; else
    [ -n "$shell" ] || fail "name a command, or -i or -s for a shell"
    set -- "$program"
  fi
fi
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
caller=\${SUDO_USER:-\${USER:-berth}}
set -- PATH="$path" HOME="$home" USER="$entry" LOGNAME="$entry" SHELL="$program" SUDO_USER="$caller" "$@"
if [ -z "$keep" ]; then
  for variable in TERM COLORTERM LANG LC_ALL TZ; do
    eval "value=\\\${$variable-}"
    [ -z "$value" ] || set -- "$variable=$value" "$@"
  done
  set -- -i "$@"
fi
# Assignments before the command, as in sudo A=b command, are read by env too.
[ "$uid" = 0 ] && exec env "$@"
if command -v setpriv >/dev/null 2>&1; then
  exec setpriv --reuid="$uid" --regid="$gid" --init-groups -- env "$@"
fi
exec su -s /bin/sh "$entry" -c 'exec env "$0" "$@"' -- "$@"
`;
