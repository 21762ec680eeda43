# Asks clustermesh for candidates. Bash splits words at `=` and `:`; the program gets them whole, and
# the candidates lose what is before the part that bash replaces.
_clustermesh() {
    local IFS=$'\013'
    local space=true
    if compopt +o nospace 2> /dev/null; then
        space=false
    fi
    local words=() before='' index=0 rest=$COMP_LINE last='' piece joined i
    for i in "${!COMP_WORDS[@]}"; do
        piece=${COMP_WORDS[i]}
        joined=false
        if [[ $i -gt 0 && $rest != [[:space:]]* && ( $piece == [=:]* || $last == *[=:] ) ]]; then
            joined=true
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$piece"}
        if [[ $i -eq $COMP_CWORD ]]; then
            if [[ $joined == true ]]; then
                before=$last
            fi
            if [[ $joined == true && $piece == [=:]* ]]; then
                before+=$piece
            elif [[ ${BASH_VERSINFO[0]} -ge 4 ]]; then
                piece=$2
            fi
        fi
        if [[ $joined == true ]]; then
            last+=$piece
            words[${#words[@]}-1]=$last
        else
            last=$piece
            words+=("$piece")
        fi
        if [[ $i -eq $COMP_CWORD ]]; then
            index=$((${#words[@]} - 1))
        fi
    done
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$index" \
        _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$space" \
        CLUSTERMESH_COMPLETE=bash \
        clustermesh -- "${words[@]}" \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
        return
    fi
    if [[ $space == false && ${COMPREPLY-} =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
    if [[ -n $before ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
}
if [[ ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 || ${BASH_VERSINFO[0]} -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clustermesh clustermesh
else
    complete -o nospace -o bashdefault -F _clustermesh clustermesh
fi
