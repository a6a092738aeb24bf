(ns tidegate.maintenance
  "Copies, dumps, loads and measures a directory. No tool leads here."
  (:require
   [clojure.java.io :as io]
   [datalevin.conn :as conn]
   [datalevin.core :as d]
   [datalevin.dump :as dump]
   [datalevin.interface :as i]
   [tidegate.stores :as stores]
   [tidegate.values :refer [refuse]])
  (:import
   [java.io File PushbackReader]
   [java.nio.file Files]
   [java.nio.file.attribute FileAttribute]))

(defn- local [kv]
  (when (instance? datalevin.remote.KVStore kv)
    (refuse :invalid-request "This is done where the directory is, not through a server."))
  kv)

(defn copy
  "A copy of the directory as it is at one moment, also while others write to it."
  [kv args _]
  (i/copy (local kv) (get args "path") (true? (get args "compact")))
  true)

(defn- vector-options-of [dir]
  (let [kv (d/open-kv dir)]
    (try (stores/vector-options kv) (finally (d/close-kv kv)))))

(defn open-with-vectors!
  "Let the functions of Datalevin that open a database by its directory alone, as a dump does, open
  one with vectors too."
  []
  (alter-var-root #'conn/create-conn
                  (fn [create]
                    (fn
                      ([] (create))
                      ([dir] (create dir nil (vector-options-of dir)))
                      ([dir & more] (apply create dir more))))))

(defn- remove-all [^File file]
  (doseq [each (reverse (file-seq file))] (.delete ^File each)))

(defn dump
  "Write all of the directory to a new file, as text: of a copy, so that it is of one moment."
  [kv args _]
  (let [path (io/file (get args "path"))
        copied (.toFile (Files/createTempDirectory
                         (.toPath (.getParentFile (.getAbsoluteFile path))) ".dump-"
                         (make-array FileAttribute 0)))]
    (try
      (i/copy (local kv) (str copied) false)
      (with-open [out (io/writer path)]
        (binding [*out* out] (dump/dump-auto (str copied))))
      (.length path)
      (finally (remove-all copied)))))

(defn load!
  "Fill a directory that holds nothing from the text of a dump."
  [dir path]
  (with-open [in (PushbackReader. (io/reader path))]
    (dump/load-auto dir in nil nil))
  true)

(defn stat
  "Pages and entries of the store, and of each table in it."
  [kv _ _]
  (local kv)
  {"store" (i/stat kv)
   "tables" (into {} (map (fn [name] [name (do (i/get-dbi kv name false) (i/stat kv name))]))
                  (i/list-dbis kv))})
