import { createTheme, type MantineColorsTuple } from "@mantine/core";

const ink: MantineColorsTuple = [
  "#eef2ff",
  "#dbe3fb",
  "#b5c4f3",
  "#8ca3eb",
  "#6a86e4",
  "#5473e0",
  "#3f5fd3",
  "#2f4bb8",
  "#263e9b",
  "#1b2f7c",
];

/** Bluish greys, so that fields and cards match in the dark scheme. */
const dark: MantineColorsTuple = [
  "#d5d9e0",
  "#b8bec9",
  "#979fac",
  "#6b7380",
  "#3a404a",
  "#30353e",
  "#252a32",
  "#1c1f25",
  "#171a1f",
  "#111317",
];

export const theme = createTheme({
  primaryColor: "ink",
  primaryShade: { light: 7, dark: 6 },
  colors: { ink, dark },
  fontFamily:
    '-apple-system, BlinkMacSystemFont, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", Helvetica, Arial, sans-serif',
  fontFamilyMonospace:
    'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace',
  defaultRadius: "md",
  cursorType: "pointer",
  headings: { fontWeight: "600" },
  components: {
    Button: { defaultProps: { size: "sm" } },
    // Without the placeholder, opening a menu moves the focus to its first item.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    // A dialog's header is not a page header.
    ModalHeader: { defaultProps: { role: "presentation" } },
    Modal: {
      defaultProps: { centered: true, overlayProps: { backgroundOpacity: 0.4 } },
      styles: { content: { background: "var(--card)" }, header: { background: "var(--card)" } },
    },
    Table: { defaultProps: { verticalSpacing: "xs", horizontalSpacing: "sm" } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300, multiline: true } },
  },
});
