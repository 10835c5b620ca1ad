import { useQuery } from "@tanstack/react-query";

import { request } from "./client";
import type { HistoryStore } from "./types";

export const HISTORIES_KEY = ["histories"] as const;

export const useHistories = () =>
  useQuery({
    queryKey: HISTORIES_KEY,
    queryFn: () => request<HistoryStore[]>("GET", "/histories"),
    refetchInterval: 15_000,
  });
