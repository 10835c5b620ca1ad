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
    doctor: "诊断",
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
    nothing: "没有这个名称",
  },
  keys: {
    title: "键盘快捷键",
    search: "在本页搜索，或全局搜索",
    palette: "跳转到任意位置",
    help: "显示这些快捷键",
  },
  login: {
    title: "登录",
    username: "用户名",
    password: "密码",
    show: "显示或隐藏密码",
    button: "登录",
    wrong: "用户名或密码错误。",
    wait: (seconds) => `尝试次数过多，请等待 ${seconds} 秒。`,
    over: "会话已结束。重新登录后可继续之前的操作。",
    or: "或",
    with: (name) => `使用 ${name} 登录`,
    elsewhere: {
      unreachable: "无法连接登录提供方。",
      stale: "该登录已超时，或是在其他窗口中发起的。请重试。",
      denied: "登录提供方拒绝了登录。",
      failed: "登录提供方返回的信息不可信。原因见控制台的审计。",
      noRole: "登录提供方认识您，但您在本控制台没有角色。请管理员为您所在的组授予角色。",
    },
    devHint: "elasticjob dev：root / root。其他情况下，初始密码在控制台首次启动时打印。",
  },
};
