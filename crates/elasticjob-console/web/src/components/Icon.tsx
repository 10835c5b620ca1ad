/** Line icons of 24 × 24, inlined to avoid requests and a large icon package. */
const PATHS = {
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  jobs: "M4 6h10M4 12h16M4 18h7M18 6h2M15 18h5",
  server: "M4 4h16v7H4zM4 13h16v7H4zM8 7.5h.01M8 16.500h.01",
  instance: "M12 3l8 4.500v9L12 21l-8-4.500v-9zM12 12l8-4.500M12 12v9M12 12L4 7.5",
  doctor: "M3 12h4l2-6 4 12 2.5-6H21",
  audit: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3",
  people:
    "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6M16 4.500a3.5 3.5 0 010 6M18 14.500c2 .8 3.2 2.7 3.5 5.5",
  registry:
    "M12 3c4.5 0 8 1.3 8 3s-3.5 3-8 3-8-1.3-8-3 3.5-3 8-3zM4 6v12c0 1.7 3.5 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.5 3 8 3s8-1.3 8-3",
  help: "M12 21a9 9 0 100-18 9 9 0 000 18zM9.5 9.500a2.5 2.5 0 113.6 2.200c-.8.4-1.1.9-1.1 1.800M12 16.500h.01",
  key: "M14 10a4 4 0 10-4 4 4 4 0 004-4zM13 13l7 7M17 17l2-2",
  search: "M10.5 17a6.5 6.5 0 100-13 6.5 6.5 0 000 13zM15.5 15.500L20 20",
  play: "M7 5l12 7-12 7z",
  stop: "M6 6h12v12H6z",
  pause: "M8 5v14M16 5v14",
  power: "M12 3v9M6.5 6.500a8 8 0 1011 0",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  check: "M5 12.500l4.5 4.500L19 7.5",
  alert: "M12 4l9 16H3zM12 10v4M12 17h.01",
  info: "M12 21a9 9 0 100-18 9 9 0 000 18zM12 11v5M12 8h.01",
  block: "M12 21a9 9 0 100-18 9 9 0 000 18zM6 6l12 12",
  sun: "M12 16a4 4 0 100-8 4 4 0 000 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.400M17.6 17.600L19 19M5 19l1.4-1.400M17.6 6.400L19 5",
  moon: "M20 14.500A8.5 8.5 0 019.5 4 8.5 8.5 0 1020 14.500z",
  language:
    "M12 21a9 9 0 100-18 9 9 0 000 18zM3 12h18M12 3c2.5 2.5 3.5 5.5 3.5 9s-1 6.5-3.5 9c-2.5-2.5-3.5-5.5-3.5-9S9.5 5.5 12 3z",
  user: "M12 12a4 4 0 100-8 4 4 0 000 8zM4 21c.8-4.5 3.8-6.5 8-6.500s7.2 2 8 6.5",
  out: "M14 4H5v16h9M10 12h11M17 8l4 4-4 4",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  refresh: "M20 11a8 8 0 10-2 6.500M20 5v6h-6",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  sort: "M8 5v14M5 16l3 3 3-3M16 19V5M13 8l3-3 3 3",
  crown: "M4 18h16l1-11-5 4-4-6-4 6-5-4z",
  bolt: "M13 3L5 14h6l-1 7 8-11h-6z",
  dots: "M12 6h.01M12 12h.01M12 18h.01",
  clock: "M12 21a9 9 0 100-18 9 9 0 000 18zM12 7v5l3.5 2",
  history: "M4 12a8 8 0 108-8 8 8 0 00-6.5 3.500M4 4v4h4M12 8v4l3 2",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "dots" ? 3 : 1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
