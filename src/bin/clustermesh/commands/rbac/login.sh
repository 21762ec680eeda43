#!/bin/sh
# Creates a login for jobs in each cluster and writes a kubeconfig with all of them:
#
#   sh login.sh FILE CLUSTER[=CONTEXT]...
#
# CLUSTER is the name in the mesh, CONTEXT a context of your kubeconfig with the right to create service accounts (default:
# CLUSTER). The token does not expire. `kubectl --namespace clustermesh delete secret snapshot-login` revokes it.
set -eu
umask 077

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

manifests() {
    cat <<'MANIFESTS'
@MANIFESTS@MANIFESTS
}

# Returns a text as a YAML string.
quoted() {
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")"
}

if [ $# -lt 2 ]; then fail 'usage: sh login.sh FILE CLUSTER[=CONTEXT]...'; fi
file=$1
shift
case $file in -*) file=./$file ;; esac
if [ -e "$file" ] || [ -L "$file" ]; then fail "$file exists: choose another file"; fi

clusters='' users='' contexts='' seen=''
for login do
    cluster=${login%%=*}
    context=${login#*=}
    case $cluster in '' | *[!a-z0-9-]*) fail "$cluster is not the name of a cluster" ;; esac
    # kubectl takes an empty context for the current one.
    if [ -z "$context" ]; then fail "$cluster: the context is empty"; fi
    case " $seen " in *" $cluster "*) fail "$cluster is named twice" ;; esac
    seen="$seen $cluster"
    printf '%s\n' "$cluster" >&2
    manifests | kubectl "--context=$context" apply --filename=- >&2
    # The controller of Kubernetes writes the token into the Secret.
    token='' tries=0
    while [ -z "$token" ]; do
        if [ "$tries" -eq 30 ]; then fail "$cluster: the Secret clustermesh/snapshot-login got no token for 30 s"; fi
        if [ "$tries" -gt 0 ]; then sleep 1; fi
        tries=$((tries + 1))
        token=$(kubectl "--context=$context" --namespace=clustermesh get secret snapshot-login \
            --output='go-template={{with .data}}{{with .token}}{{. | base64decode}}{{end}}{{end}}')
    done
    field() {
        kubectl "--context=$context" config view --minify --flatten --raw --output="jsonpath={.clusters[0].cluster.$1}"
    }
    server=$(field server)
    authority=$(field certificate-authority-data)
    name=$(field tls-server-name)
    proxy=$(field proxy-url)
    clusters="$clusters
- name: $(quoted "$cluster")
  cluster:
    server: $(quoted "$server")"
    if [ -n "$authority" ]; then clusters="$clusters
    certificate-authority-data: $(quoted "$authority")"; fi
    if [ -n "$name" ]; then clusters="$clusters
    tls-server-name: $(quoted "$name")"; fi
    if [ -n "$proxy" ]; then clusters="$clusters
    proxy-url: $(quoted "$proxy")"; fi
    users="$users
- name: $(quoted "$cluster")
  user:
    token: $(quoted "$token")"
    contexts="$contexts
- name: $(quoted "$cluster")
  context:
    cluster: $(quoted "$cluster")
    user: $(quoted "$cluster")"
done

temporary=$(mktemp "$file.XXXXXX")
trap 'rm -f "$temporary"' EXIT
printf 'apiVersion: v1\nkind: Config\nclusters:%s\nusers:%s\ncontexts:%s\n' "$clusters" "$users" "$contexts" >"$temporary"
mv "$temporary" "$file"
printf 'wrote %s\n' "$file" >&2
