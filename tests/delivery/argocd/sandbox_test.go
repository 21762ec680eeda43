package argocd

const pluginServer = "argocd-cmp-server"
