import { createContext, use } from "react";

import type { Role } from "../api/types";
import { reaches } from "./session";

interface Here {
  registry: string;
  role: Role;
}

/** The registry of the URL, and what one may do there. */
export const RegistryContext = createContext<Here>({ registry: "", role: "viewer" });

export const useRegistry = () => use(RegistryContext).registry;

export const useMay = (needed: Role) => reaches(use(RegistryContext).role, needed);

/** A page of the registry we are at. */
export function useTo() {
  const registry = useRegistry();
  return (...parts: string[]) =>
    `/r/${encodeURIComponent(registry)}/${parts.map(encodeURIComponent).join("/")}`;
}
