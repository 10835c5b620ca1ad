import type { shell as English } from "../en/shell";

/** 中文：与 en/shell.ts 相同的形状。 */
export const shell: typeof English = {
  nav: {
    menu: "菜单",
    overview: "总览",
    jobs: "作业",
    runs: "运行记录",
    servers: "服务器",
    instances: "实例",
    doctor: "巡检",
    registries: "注册中心",
    audit: "审计",
    accounts: "账号管理",
    account: "我的账号",
    help: "帮助",
    console: "控制台",
    userMenu: (name) => `账号 ${name}`,
  },
  palette: {
    open: "搜索",
    placeholder: "跳转到页面或作业…",
    page: "页面",
    job: "作业",
    noMatch: "没有匹配项",
  },
  keys: {
    title: "键盘快捷键",
    search: "搜索本页，或搜索全部页面和作业",
    palette: "跳转到页面或作业",
    help: "显示快捷键",
  },
  login: {
    title: "登录",
    username: "用户名",
    password: "密码",
    show: "显示或隐藏密码",
    button: "登录",
    wrong: "用户名或密码错误。",
    wait: (seconds) => `尝试次数过多，请等待 ${seconds} 秒。`,
    expired: "会话已过期。重新登录后可继续之前的操作。",
    or: "或",
    with: (name) => `使用 ${name} 登录`,
    oidcOutcomes: {
      unreachable: "无法连接登录提供方。",
      stale: "该登录已超时，或是在其他窗口中发起的。请重试。",
      denied: "登录提供方拒绝了登录。",
      failed: "无法验证登录提供方的响应。原因见控制台的审计日志。",
      noRole: "您已在登录提供方登录，但您所在的组在本控制台没有角色。请联系管理员。",
    },
    devHint: "elasticjob dev：root / root。其他情况下，初始密码在控制台首次启动时打印。",
  },
};
