(ns tidegate.worker
  "Answers the gate's requests on its pipes: frames of JSON, each after its length as a 32-bit
  little-endian number. It knows the operations of `operations` and no other, resolves no function
  that is not built in, and writes only where a request says so."
  (:require
   [clojure.edn :as edn]
   [clojure.pprint :as pprint]
   [clojure.string :as str]
   [datalevin.built-ins :as built-ins]
   [datalevin.constants :as c]
   [datalevin.core :as d]
   [datalevin.datom :as dd]
   [datalevin.db :as db]
   [datalevin.entity :as de]
   [datalevin.interface :as i]
   [datalevin.pull-parser]
   [datalevin.query.resolve :as resolve]
   [jsonista.core :as json]
   [tidegate.maintenance :as maintenance]
   [tidegate.planner :as planner]
   [tidegate.query :as query]
   [tidegate.stores :as stores]
   [tidegate.values :as v :refer [decode encode refuse keyword-of]])
  (:import
   [com.fasterxml.jackson.core JsonGenerator$Feature]
   [com.fasterxml.jackson.databind ObjectMapper]
   [java.io BufferedInputStream BufferedOutputStream DataInputStream EOFException FileDescriptor
    FileInputStream FileOutputStream OutputStream PrintStream]
   [java.nio ByteBuffer ByteOrder]
   [java.util.concurrent ExecutorService Executors ThreadFactory])
  (:gen-class))

(set! *warn-on-reflection* false)

;; No code runs that a caller names.

(defn- built-in-xform [named]
  (or (get built-ins/query-fns named)
      (refuse :function-refused
              (str "`:xform` takes the name of a built-in function, and `" named "` is none."))))

(defn fence!
  "Let queries and pulls call built-in functions only, in every thread."
  []
  (alter-var-root #'resolve/*resolver-mode* (constantly :server-safe))
  (alter-var-root #'datalevin.pull-parser/resolve-xform (constantly built-in-xform)))

(def ^:private most-query-depth 100)

(defn- nesting ^long [^String text]
  (loop [n 0 depth 0 deepest 0 in-text? false]
    (if (= n (.length text))
      deepest
      (let [c (.charAt text n)]
        (cond
          in-text? (case c
                     \\ (recur (min (.length text) (+ n 2)) depth deepest true)
                     \" (recur (inc n) depth deepest false)
                     (recur (inc n) depth deepest true))
          (= c \") (recur (inc n) depth deepest true)
          (#{\( \[ \{} c) (recur (inc n) (inc depth) (max deepest (inc depth)) false)
          (#{\) \] \}} c) (recur (inc n) (dec depth) deepest false)
          :else (recur (inc n) depth deepest false))))))

(defn- read-edn [text field]
  (when-not (string? text)
    (refuse :invalid-request (str field " must be a text in EDN.") {:field field}))
  (when (> (nesting text) most-query-depth)
    (refuse :invalid-request (str field " is nested more than " most-query-depth " deep.")))
  (try
    (edn/read-string text)
    (catch Exception e
      (refuse :invalid-request
              (str field " is no EDN that can be read: " (.getMessage e)) {:field field}))))

;; Arguments.

(defn- whole [args field fallback]
  (let [x (get args field ::none)]
    (cond
      (= x ::none) fallback
      (and (integer? x) (not (neg? (long x)))) (long x)
      :else (refuse :invalid-request (str field " must be a whole number of at least 0.")
                    {:field field}))))

(defn- text-of [args field]
  (let [x (get args field)
        x (if (and (map? x) (= ["~str"] (keys x))) (get x "~str") x)]
    (if (string? x) x (refuse :invalid-request (str field " must be a text.") {:field field}))))

(defn- list-of [args field]
  (let [x (get args field)]
    (if (sequential? x)
      (mapv decode x)
      (refuse :invalid-request (str field " must be an array.") {:field field}))))

(defn- selector-of [x]
  (cond
    (map? x) (into {} (map (fn [[k v]] [(selector-of k) (selector-of v)])) x)
    (sequential? x) (mapv selector-of x)
    (= "*" x) '*
    :else x))

(defn- pull-selector [args]
  (let [given (get args "selector")]
    (selector-of (if (and (string? given) (str/starts-with? (str/triml given) "["))
                   (read-edn given "selector")
                   (decode given)))))

(defn- type-of [args field]
  (let [x (get args field)]
    (cond
      (nil? x) :data
      (sequential? x) (mapv #(keyword-of % field) x)
      :else (keyword-of x field))))

(defn- numbers-of [args field]
  (let [numbers (list-of args field)]
    (when-not (and (seq numbers) (every? number? numbers))
      (refuse :invalid-request (str field " must be an array of numbers.") {:field field}))
    (float-array numbers)))

(defn- options-of
  "The options of a search; the gate has checked each of them."
  [args]
  (decode (or (get args "opts") {})))

;; Answers: a value; `counted` for a list of which the caller gets a part.

(defrecord Counted [shown total corrected])

(defn- part [shown total] (->Counted shown total false))

(defn- counted [most xs]
  (let [xs (vec xs)]
    (part (if (> (count xs) (long most)) (subvec xs 0 most) xs) (count xs))))

(defn- relation
  "A query's answer. A set has no order, so it gets one before it is cut."
  [most found]
  (cond
    (or (set? found) (instance? java.util.Set found)) (part (v/least most found) (count found))
    (or (sequential? found) (instance? java.util.List found)) (counted most found)
    :else found))

(defn- remote-database? [db]
  (instance? datalevin.remote.DatalogStore (.-store ^datalevin.db.DB db)))

(defn- run-query [conn args]
  (let [query (read-edn (text-of args "query") "query")
        inputs (mapv decode (or (get args "inputs") []))
        [found corrected] (query/ask conn query inputs (remote-database? (d/db conn)))]
    [query found corrected]))

(defn- answer-query [conn args most]
  (let [[_ found corrected] (run-query conn args)
        answer (relation most found)
        answer (if (instance? Counted answer) answer (part answer nil))]
    (assoc answer :corrected corrected)))

(defn- page-of [args most total]
  (let [offset (whole args "offset" 0)
        limit (whole args "limit" Long/MAX_VALUE)
        all (max 0 (min (long limit) (- (long total) (long offset))))]
    {:offset offset :total all :shown (min all (long most))}))

(defn- index-of [args]
  (let [index (keyword-of (get args "index") "index")]
    (or (#{:eav :ave} index)
        ({:eavt :eav :avet :ave} index)
        (refuse :invalid-request "index must be eav or ave." {:field "index"}))))

(defn- attribute [x]
  (when (some? x) (keyword-of (decode x) "The attribute")))

(defn- entity-of [db x]
  (when (some? x) (query/entity-number db (decode x))))

(defn- value-of
  "A value that is looked for, as the attribute keeps its like."
  [db a x]
  (let [x (query/as-given (db/-schema db) a x)]
    (if (and (= :db.type/ref (get-in (db/-schema db) [a :db/valueType])) (not (integer? x)) (some? x))
      (query/entity-number db x)
      x)))

(defn- datoms-page [args most total all]
  (let [{:keys [offset shown total]} (page-of args most total)]
    (part (if (pos? (long shown)) (into [] (comp (drop offset) (take shown)) (all (+ offset shown))) [])
               total)))

(defn- may-have?
  "Whether a fact of an attribute of a type can have a value: the engine fails where it cannot."
  [type x]
  (case type
    (:db.type/long :db.type/ref) (and (integer? x) (<= Long/MIN_VALUE x Long/MAX_VALUE))
    :db.type/string (string? x)
    :db.type/keyword (keyword? x)
    :db.type/symbol (symbol? x)
    :db.type/boolean (boolean? x)
    (:db.type/double :db.type/float) (or (float? x) (and (integer? x) (instance? Long x)))
    :db.type/bigint (integer? x)
    :db.type/bigdec (or (decimal? x) (integer? x))
    :db.type/instant (inst? x)
    :db.type/uuid (uuid? x)
    :db.type/bytes (bytes? x)
    (:db.type/vec :db.type/idoc) false
    true))

(defn- beyond-long? [x] (and (integer? x) (not (<= Long/MIN_VALUE x Long/MAX_VALUE))))

(defn- facts-with
  "The facts of an attribute that have a value. The index keeps the beginning of a long text only, and
  finds no number beyond 64 bits where an attribute has no type."
  [db e a x]
  (let [type (get-in (db/-schema db) [a :db/valueType])
        x (query/as-typed (db/-schema db) a x)]
    (cond
      (not (may-have? type x)) []
      (and (nil? type) (beyond-long? x)) (filter #(= x (dd/datom-v %)) (d/search-datoms db e a nil))
      (string? x) (filter #(= x (dd/datom-v %)) (d/search-datoms db e a x))
      :else (d/search-datoms db e a x))))

(defn- found-facts
  "Facts by each of their parts. By a value alone each attribute is asked: the engine compares a number
  with values of all types, and fails at the first that is none."
  [db e a x]
  (cond
    (nil? x) (d/search-datoms db e a x)
    (some? a) (facts-with db e a x)
    :else (sort-by (juxt dd/datom-e (comp str dd/datom-a))
                   (mapcat #(facts-with db e % x) (sort-by str (keys (db/-schema db)))))))

(defn- count-facts
  "How many facts there are. Of an entity Datalevin counts all facts, whatever their attribute is."
  [db e a x]
  (if (or (some? x) (and (some? e) (some? a)))
    (count (found-facts db e a x))
    (d/count-datoms db e a x)))

(defn- datoms [conn args most]
  (let [db (d/db conn)
        index (index-of args)
        ave? (= index :ave)
        c1 (if ave? (attribute (get args "c1")) (entity-of db (get args "c1")))
        c2 (if ave? (value-of db c1 (decode (get args "c2"))) (attribute (get args "c2")))
        c3 (if ave? (entity-of db (get args "c3")) (value-of db c2 (decode (get args "c3"))))
        [e a x] (if ave? [c3 c1 c2] [c1 c2 c3])]
    (datoms-page args most (count-facts db e a x)
                 (cond
                   (and (some? a) (some? x)) (fn [_] (found-facts db e a x))
                   ;; The client of a server takes no limit for these.
                   (remote-database? db) (fn [_] (d/datoms db index c1 c2 c3))
                   :else (fn [limit] (d/datoms db index c1 c2 c3 limit))))))

(defn- matching [conn args most]
  (let [db (d/db conn)
        e (entity-of db (get args "e")) a (attribute (get args "a"))
        x (value-of db a (decode (get args "v")))]
    (datoms-page args most (count-facts db e a x) (fn [_] (found-facts db e a x)))))

(declare whole-entity)

(defn- referred-entity
  "An entity that another refers to: a component is a part of that one, any other is its number."
  [component? found]
  (cond
    (set? found) (into #{} (map #(referred-entity component? %)) found)
    (not (de/entity? found)) found
    component? (whole-entity found)
    :else {:db/id (:db/id found)}))

(defn- whole-entity
  "The attributes of an entity. What it refers to is not followed: references may lead in a circle,
  or through all of the database."
  [found]
  (let [db (de/entity-db found)]
    (into {} (map (fn [[a x]] [a (referred-entity (db/component? db a) x)])) (d/touch found))))

(def ^:private transaction-forms
  #{:db/add :db/retract :db/retractEntity :db.fn/retractEntity :db.fn/retractAttribute
    :db/cas :db.fn/cas})

(defn- check-transaction
  "Only facts are given: no function is called, and none is stored."
  [forms]
  (doseq [form forms]
    (cond
      (map? form)
      (doseq [[k x] form]
        (when (#{"db/fn" "db.install/function"} (subs (str k) (if (keyword? k) 1 0)))
          (refuse :function-refused "A transaction may not store a function."))
        (when (and (sequential? x) (some map? x)) (check-transaction (filter map? x)))
        (when (map? x) (check-transaction [x])))
      (sequential? form)
      (let [[what _ a] form]
        (when-not (transaction-forms what)
          (refuse :function-refused
                  (str "A transaction takes maps and " (str/join ", " (sort transaction-forms))
                       ", and `" what "` is none of them.")))
        (when (= :db/fn a) (refuse :function-refused "A transaction may not store a function.")))
      :else (refuse :invalid-request "txData must be an array of maps and arrays."
                    {:field "txData"}))))

;; Components in a circle, which the engine follows without end.

(defn- parts-of [db e]
  (filter #(db/component? db (dd/datom-a %)) (d/search-datoms db e nil nil)))

(defn- circle
  "All entities that are parts of one, if a way of parts leads back to where it was; nil otherwise."
  [db e]
  (loop [seen #{} left [[e #{}]] circle? false]
    (if-let [[[x above] & more] (seq left)]
      (cond
        (above x) (recur seen more true)
        (seen x) (recur seen more circle?)
        :else (recur (conj seen x)
                     (concat (map (fn [part] [(dd/datom-v part) (conj above x)]) (parts-of db x)) more)
                     circle?))
      (when circle? seen))))

(defn- retracted
  "The facts of entities, and those that refer to them, as they are retracted one by one."
  [db entities]
  (let [refs (keep (fn [[a {:db/keys [valueType]}]] (when (= :db.type/ref valueType) a))
                   (db/-schema db))]
    (->> (concat (mapcat #(d/search-datoms db % nil nil) entities)
                 (for [a refs e entities fact (d/search-datoms db nil a e)] fact))
         (map (fn [fact] [:db/retract (dd/datom-e fact) (dd/datom-a fact) (dd/datom-v fact)]))
         distinct)))

(defn- without-circles
  "Transaction data in which the retraction of an entity that is a part of itself names its facts."
  [db forms]
  (mapcat (fn [form]
            (let [[what e a] (when (sequential? form) form)
                  id (when (#{:db/retractEntity :db.fn/retractEntity :db.fn/retractAttribute
                              :db/retractAttribute} what)
                       (d/entid db e))]
              (cond
                (nil? id) [form]
                (nil? a) (if-let [all (circle db id)] (retracted db all) [form])
                (db/component? db a)
                (let [facts (d/search-datoms db id a nil)
                      parts (map dd/datom-v facts)]
                  (if (some #(circle db %) parts)
                    (distinct (concat (map (fn [fact] [:db/retract id a (dd/datom-v fact)]) facts)
                                      (retracted db (set (mapcat #(or (circle db %) [%]) parts)))))
                    [form]))
                :else [form])))
          forms))

(defn- refers?
  "Whether the values of a key of a map are entities, which may be maps themselves."
  [schema a]
  (and (keyword? a)
       (or (str/starts-with? (name a) "_") (= :db.type/ref (get-in schema [a :db/valueType])))))

(defn- typed
  "A form of a transaction whose values are as their attributes keep them; refuses those that would
  be cut."
  [schema form]
  (cond
    (map? form)
    (into {} (map (fn [[a x]]
                    [a (cond
                         (not (refers? schema a)) (query/as-stored schema a x)
                         (map? x) (typed schema x)
                         (and (sequential? x) (some map? x)) (mapv #(if (map? %) (typed schema %) %) x)
                         :else x)]))
          form)
    (and (sequential? form) (< 3 (count form)))
    (let [[what e a & values] form]
      (into [what e a] (map #(query/as-stored schema a %)) values))
    :else form))

(defn- report [{:keys [tx-data tempids tx-meta]}]
  {"tx-data" (or tx-data []) "tempids" (or tempids {})
   "tx-id" (:db/current-tx tempids) "tx-meta" tx-meta})

(defn- transact [conn args _]
  (let [given (list-of args "txData")
        _ (check-transaction given)
        forms (without-circles (d/db conn) (map (partial typed (d/schema conn)) given))]
    (let [made (if (contains? args "txMeta")
                 (d/transact! conn forms (decode (get args "txMeta")))
                 (d/transact! conn forms))
          schema (d/schema conn)]
      (when (some #(= :db.type/vec (get-in schema [(dd/datom-a %) :db/valueType])) (:tx-data made))
        (stores/store-vectors! conn))
      (report made))))

;; Key-value stores.

(defn- remote-kv? [kv] (instance? datalevin.remote.KVStore kv))

(defn- dbi-of [kv x]
  (when-not (string? x) (refuse :invalid-request "dbi must be a text." {:field "dbi"}))
  (when-not (some #{x} (i/list-dbis kv))
    (stores/absent "dbi" (str "The store has no DBI `" x "`.")))
  (if (remote-kv? kv) (i/open-dbi kv x) (i/get-dbi kv x false))
  x)

(defn- kv-get [kv args _]
  (let [dbi (dbi-of kv (get args "dbi"))
        pair? (true? (get args "returnPair"))]
    (d/get-value kv dbi (decode (get args "key")) (type-of args "keyType") (type-of args "valueType")
                 (not pair?))))

(defn- key-range [args]
  (let [[kind & ends] (list-of args "keyRange")]
    (into [(keyword-of kind "keyRange")] ends)))

(defn- kv-range [kv args most]
  (let [dbi (dbi-of kv (get args "dbi"))
        wanted (key-range args)
        k-type (type-of args "keyType")
        {:keys [offset total shown]} (page-of args most (d/range-count kv dbi wanted k-type))]
    (part
     (if (pos? (long shown))
       (into [] (drop offset)
             (d/get-first-n kv dbi (+ (long offset) (long shown)) wanted k-type
                            (type-of args "valueType") false))
       [])
     total)))

(defn- kv-form [form]
  (if (and (vector? form) (string? (first form)))
    (assoc form 0 (keyword-of (first form) "txs"))
    form))

(defn- kv-dbis [forms dbi]
  (if dbi [dbi] (distinct (map second forms))))

(defn- of-index?
  "Whether a DBI is named as those of an index are: its domain, a slash and what it holds."
  [name]
  (some #(str/ends-with? name (str "/" %))
        [c/terms c/docs c/positions c/rawtext c/vec-refs
         c/idoc-doc-ref c/idoc-doc-index c/idoc-path-dict]))

(defn- kv-transact [kv args create?]
  (let [forms (mapv kv-form (list-of args "txs"))
        dbi (get args "dbi")
        typed? (or (contains? args "keyType") (contains? args "valueType"))]
    ;; The forms for lists of values keep only the last one in a table that is not made for lists.
    (when-not (every? #(and (vector? %) (#{:put :del} (first %))) forms)
      (refuse :invalid-request "Each of txs must be [\":put\" …] or [\":del\" …]." {:field "txs"}))
    (doseq [name (kv-dbis forms dbi)]
      (when-not (string? name) (refuse :invalid-request "dbi must be a text." {:field "dbi"}))
      (when (or (str/starts-with? name "datalevin/") (of-index? name))
        (refuse :invalid-request
                (str "The DBI `" name "` is Datalevin's own and is not written as a store.")))
      (if (some #{name} (i/list-dbis kv))
        (dbi-of kv name)
        (if create? (d/open-dbi kv name) (dbi-of kv name))))
    (let [said (cond
                 typed? (d/transact-kv kv dbi forms (type-of args "keyType")
                                       (type-of args "valueType"))
                 dbi    (d/transact-kv kv dbi forms)
                 :else  (d/transact-kv kv forms))]
      (if (keyword? said) said :transacted))))

;; Indexes.

(defn- search-documents [index args most]
  (counted most (d/search index (text-of args "query") (options-of args))))

(defn- vector-search [index args most]
  (counted most (d/search-vec index (numbers-of args "queryVector")
                              (options-of args))))

(defn- stored [index]
  (when (instance? datalevin.vector.VectorIndex index) (d/force-vec-checkpoint! index))
  true)

;; Our own questions: a catalog, and a query as a table.

(defn- column-name [x] (if (symbol? x) (str x) (pr-str x)))

(defn- table [conn args most]
  (let [[query found] (run-query conn args)
        {:keys [find] :as given} (query/parts query)
        names (or (:keys given) (:strs given) (:syms given))
        one? (and (vector? (first find)) (= '... (peek (first find))))
        tuple? (and (vector? (first find)) (not one?))
        scalar? (= '. (last find))
        elements (cond one? (pop (first find)) tuple? (first find) scalar? (butlast find) :else find)
        listed (cond
                 (nil? found) []
                 scalar? [[found]]
                 tuple? [found]
                 one? (map vector found)
                 :else found)
        listed (if names
                 (map (fn [row] (mapv #(get row ((cond (:keys given) keyword
                                                       (:strs given) str
                                                       :else identity)
                                                 (if (:syms given) % (name %))))
                                      names))
                      listed)
                 listed)
        answer (relation most (if (or (set? listed) (instance? java.util.Set listed)) listed
                                  (vec listed)))]
    {"columns" (mapv column-name (or names elements))
     "rows" (:shown answer)
     "total" (:total answer)}))

(defn- explain [conn args _]
  (let [query (read-edn (text-of args "query") "query")
        inputs (mapv decode (or (get args "inputs") []))]
    (with-out-str
      (pprint/pprint (apply d/explain {:run? false} (query/as-asked conn query) (d/db conn) inputs)))))

(def ^:private referred-entities 10)

(defn- referred
  "Attributes of some of the entities that an attribute refers to."
  [db a]
  (->> (d/datoms db :ave a nil nil referred-entities)
       (map dd/datom-v)
       distinct
       (mapcat #(d/datoms db :eav % nil nil referred-entities))
       (map dd/datom-a)
       distinct
       vec))

(defn- count-of
  "How many facts have an attribute; nil for one that Datalevin does not index, as vectors."
  [db a]
  (try (d/count-datoms db nil a nil) (catch clojure.lang.ExceptionInfo _ nil)))

(defn- catalog [conn _ _]
  (let [db (d/db conn)]
    (mapv (fn [[a props]]
            {"attribute" a "properties" props "count" (count-of db a)
             "refers" (if (and (= :db.type/ref (:db/valueType props))
                               (not (remote-database? db)))
                        (referred db a)
                        [])})
          (sort-by (comp str key) (d/schema conn)))))

(defn- simulate
  "What a transaction would add and retract: how many facts, and the first of them."
  [conn args most]
  (let [forms (list-of args "txData")
        _ (check-transaction forms)
        facts (:tx-data (d/tx-data->simulated-report (d/db conn)
                                                     (without-circles
                                                      (d/db conn)
                                                      (map (partial typed (d/schema conn)) forms))))
        added (count (filter dd/datom-added facts))]
    {"added" added
     "retracted" (- (count facts) added)
     "makes" (into [] (comp (map dd/datom-a) (distinct) (remove (d/schema conn)) (take most)) facts)
     "facts" (into [] (take most) facts)}))

;; The operations: (fn [target arguments most-items]) for those that read.

(def ^:private reads
  {"query"            answer-query
   "pull"             (fn [conn args _]
                        (d/pull (d/db conn) (pull-selector args) (query/check-entity (decode (get args "eid")))))
   "pull_many"        (fn [conn args most]
                        (counted most (d/pull-many (d/db conn) (pull-selector args)
                                                   (mapv query/check-entity (list-of args "eids")))))
   "entity"           (fn [conn args _]
                        (some-> (d/entity (d/db conn) (query/check-entity (decode (get args "eid"))))
                                whole-entity))
   "datoms"           datoms
   "search_datoms"    matching
   "count_datoms"     (fn [conn args _]
                        (let [db (d/db conn) a (attribute (get args "a"))]
                          (count-facts db (entity-of db (get args "e")) a
                                       (value-of db a (decode (get args "v"))))))
   "fulltext_datoms"  (fn [conn args most]
                        (counted most (d/fulltext-datoms (d/db conn) (text-of args "query")
                                                         (options-of args))))
   "kv_get"           kv-get
   "kv_range"         kv-range
   "document_count"   (fn [index _ _] (d/doc-count index))
   "document_indexed" (fn [index args _] (boolean (d/doc-indexed? index (decode (get args "docRef")))))
   "search_documents" search-documents
   "vector_index_info" (fn [index _ _] (d/vector-index-info index))
   "vector_indexed"   (fn [index args _]
                        (boolean (i/vec-indexed? index (decode (get args "vectorRef")))))
   "vector_search"    vector-search
   "table"            table
   "catalog"          catalog
   "explain"          explain
   "simulate"         simulate
   "copy"             maintenance/copy
   "dump"             maintenance/dump
   "stat"             maintenance/stat})

(def ^:private writes
  {"transact"        transact
   "kv_transact"     kv-transact
   "add_document"    (fn [index args _]
                       (let [ref (decode (get args "docRef")) text (text-of args "docText")]
                         (if (contains? args "checkExist")
                           (d/add-doc index ref text (true? (get args "checkExist")))
                           (d/add-doc index ref text)))
                       true)
   "remove_document" (fn [index args _] (d/remove-doc index (decode (get args "docRef"))) true)
   "clear_documents" (fn [index _ _] (d/clear-docs index) true)
   "add_vector"      (fn [index args _]
                       (d/add-vec index (decode (get args "vectorRef")) (numbers-of args "vectorData"))
                       (stored index))
   "remove_vector"   (fn [index args _]
                       (d/remove-vec index (decode (get args "vectorRef")))
                       (stored index))})

(def ^:private opens #{"open_database" "open_kv" "open_search_index" "open_vector_index"})

(defn- target-of [{:strs [kind options client]}]
  (let [options (into {} (map (fn [[k x]] [(keyword-of k "opts") (decode x)])) options)]
    {:kind kind
     :options {(case kind "database" :database "kv" :kv :index) options}
     :client (into {} (map (fn [[k x]] [(keyword-of k "clientOpts") (decode x)])) client)}))

(defn- answer [{:strs [operation place target arguments create writes? most]}]
  (let [args (or arguments {})
        target (target-of target)
        create? (true? create)]
    (cond
      (= operation "close") (do (stores/close! place) true)

      (and (= operation "load") (true? writes?))
      (do (stores/close! place) (maintenance/load! place (text-of args "path")))

      (opens operation)
      (let [store (stores/store-of place)
            schema (when create? (some-> (get args "schema") decode))]
        (if create?
          (stores/writing store target true schema (constantly true))
          (stores/reading store target (constantly true))))

      (reads operation)
      (stores/reading (stores/store-of place) target
                      (fn [thing] (let [found ((reads operation) thing args most)]
                                    ;; Lazy parts are read while the store is held open.
                                    (if (instance? Counted found)
                                      (update found :shown encode)
                                      (part (encode found) nil)))))

      (and (writes operation) (true? writes?))
      (stores/writing (stores/store-of place) target create? nil
                      (fn [thing]
                        (stores/refuse-own-index (stores/store-of place) target)
                        (part (encode ((writes operation) thing args create?)) nil)))

      :else (refuse :unknown-operation (str "There is no operation `" operation "` here.")))))

;; Errors.

(defn- short-text [text]
  (let [text (str text)
        cause (second (re-find #":cause \"((?:[^\"\\]|\\.){1,2000})\"" text))
        line (or cause (first (str/split-lines text)) "")]
    (v/whole-characters (if (> (count line) 600) (str (subs line 0 600) "…") line))))

(defn- data-of [^Throwable t]
  (->> (iterate ex-cause t) (take-while some?) (take 20) (keep ex-data) (some #(when (:code %) %))))

(defn- types-of-cast
  "The two classes of which a text of the JVM says that one is not the other."
  [text]
  (let [[_ is wanted] (re-find #"class \S*?([^.\s$]+) cannot be cast to class \S*?([^.\s$]+) " (str text))]
    (if is (str "`" is "` where `" wanted "` is needed") (short-text text))))

(defn- fault [^Throwable t]
  (let [{:keys [code] :as data} (data-of t)
        root (last (take 20 (take-while some? (iterate ex-cause t))))
        said (some not-empty [(ex-message t) (ex-message root)])]
    {"code" (str (or code :tool-error))
     "message" (if (instance? ClassCastException root)
                 (str "Datalevin compared or took values of types that do not go together: "
                      (types-of-cast (ex-message root)) ".")
                 (short-text (or said (.getSimpleName (class t)))))
     "absent" (:absent data)
     "field" (:field data)}))

;; Frames.

(def ^:private mapper
  ;; By default Jackson writes a character outside the basic plane as two escapes of six bytes, and
  ;; the limit of the document counts bytes.
  (.configure ^ObjectMapper (json/object-mapper {:decode-key-fn identity :encode-key-fn identity})
              JsonGenerator$Feature/COMBINE_UNICODE_SURROGATES_IN_UTF8 true))

(defn- read-frame [^DataInputStream in]
  (let [size (Integer/reverseBytes (.readInt in))
        content (byte-array size)]
    (.readFully in content)
    content))

(defn- write-frame [^OutputStream out ^bytes content]
  (locking out
    (.write out (.array (.putInt (.order (ByteBuffer/allocate 4) ByteOrder/LITTLE_ENDIAN)
                                 (alength content))))
    (.write out content)
    (.flush out)))

(defn- too-large [number size most]
  (json/write-value-as-bytes
   {"number" number
    "fault" {"code" ":result-too-large"
             "message" (str "The result has " size " bytes, and the limit is " most ".")}}
   mapper))

(defn reply
  "The bytes that answer a request."
  [request]
  (let [number (get request "number")]
    (try
      (let [found (answer request)
            said (if (instance? Counted found) (:shown found) found)
            content (json/write-value-as-bytes
                     {"number" number
                      "items" (when (instance? Counted found) (:total found))
                      "corrected" (and (instance? Counted found) (:corrected found))
                      "result" said}
                     mapper)
            most (long (or (get request "bytes") Integer/MAX_VALUE))]
        (if (> (alength ^bytes content) most)
          (too-large number (alength ^bytes content) most)
          content))
      (catch StackOverflowError _
        (json/write-value-as-bytes
         {"number" number "fault" {"code" ":invalid-request" "message" "It is nested too deep."}}
         mapper))
      (catch OutOfMemoryError e (throw e))
      (catch Throwable t
        (json/write-value-as-bytes {"number" number "fault" (fault t)} mapper)))))

(def ^:private threads 8)

(defn- pool ^ExecutorService []
  (Executors/newFixedThreadPool
   threads (reify ThreadFactory
             (newThread [_ task] (doto (Thread. nil task "request" (* 4 1024 1024))
                                   (.setDaemon true))))))

(defn serve [^java.io.InputStream source ^OutputStream sink]
  (let [in (DataInputStream. (BufferedInputStream. source))
        out (BufferedOutputStream. sink 65536)
        tasks (pool)]
    (write-frame out (json/write-value-as-bytes {"number" 0 "result" {"version" c/version}} mapper))
    (try
      (loop []
        (let [request (json/read-value ^bytes (read-frame in) mapper)]
          (.execute tasks (fn []
                            (try (write-frame out (reply request))
                                 (catch java.io.IOException _)
                                 (catch OutOfMemoryError _ (.halt (Runtime/getRuntime) 3)))))
          (recur)))
      (catch EOFException _))
    (stores/close-all!)))

(defn train
  "Do a little of everything in `directory`, so that the JVM's cache knows the code."
  [directory]
  (let [dir (str directory "/database") kv (str directory "/kv")
        ask (fn [place kind operation more]
              (reply (merge {"number" 1 "operation" operation "place" place "most" 200
                             "target" {"kind" kind "options" (get more "options" {})} "writes?" true}
                            (dissoc more "options"))))
        database (partial ask dir "database")
        store (partial ask kv "kv")]
    (database "open_database"
              {"create" true
               "arguments" {"schema" {":name" {":db/unique" ":db.unique/identity"
                                               ":db/valueType" ":db.type/string"}
                                      ":text" {":db/valueType" ":db.type/string"
                                               ":db/fulltext" true}
                                      ":parent" {":db/valueType" ":db.type/ref"}
                                      ":age" {":db/valueType" ":db.type/long"}}}})
    (database "transact"
              {"arguments" {"txData" [{":db/id" -1 ":name" "Ann" ":age" 40 ":text" "a red fox"}
                                      {":name" "Bob" ":age" 9 ":parent" -1 ":text" "blue sea"}]}})
    (dotimes [_ 3]
      (doseq [text ["[:find ?n ?a :where [?e :name ?n] [?e :age ?a] [(> ?a 5)]]"
                    "[:find (count ?e) . :where [?e :name]]"
                    "[:find ?n (max ?a) :where [?e :name ?n] [?e :age ?a] [?e :parent ?p] [?p :name]]"
                    "[:find ?n :in $ ?p :where [?e :name ?n] (or [?e :parent ?p] [?e :age 40])]"]]
        (let [inputs (if (str/includes? text ":in") [1] [])]
          (database "query" {"arguments" {"query" text "inputs" inputs}})
          (database "table" {"arguments" {"query" text "inputs" inputs}})))
      (database "query" {"arguments" {"query" "[:find ?n :in $ % :where (older ?e) [?e :name ?n]]"
                                      "inputs" [{"~edn" "[[(older ?e) [?e :age ?a] [(> ?a 10)]] [(older ?e) [?e :parent ?p] (older ?p)]]"}]}}))
    (database "pull" {"arguments" {"selector" ["*" {":parent" ["*"]}] "eid" [":name" "Bob"]}})
    (database "entity" {"arguments" {"eid" 1}})
    (database "datoms" {"arguments" {"index" "eav" "limit" 5}})
    (database "search_datoms" {"arguments" {"a" ":name"}})
    (database "fulltext_datoms" {"arguments" {"query" "fox"}})
    (database "catalog" {})
    (database "simulate" {"arguments" {"txData" [{":name" "Bob" ":age" 10}]}})
    (store "open_kv" {"create" true})
    (store "kv_transact" {"create" true "arguments" {"dbi" "a" "txs" [[":put" "x" {"y" [1 2.5]}]]}})
    (store "kv_get" {"arguments" {"dbi" "a" "key" "x"}})
    (store "kv_range" {"arguments" {"dbi" "a" "keyRange" [":all"] "limit" 5}})
    (ask kv "search_index" "open_search_index" {"create" true})
    (ask kv "search_index" "add_document" {"arguments" {"docRef" 1 "docText" "a red fox"}})
    (ask kv "search_index" "search_documents" {"arguments" {"query" "fox"}})
    (let [vectors {"options" {":dimensions" 2 ":domain" "v"}}]
      (ask kv "vector_index" "open_vector_index" (assoc vectors "create" true))
      (ask kv "vector_index" "add_vector"
           (assoc vectors "arguments" {"vectorRef" 1 "vectorData" [1.0 0.5]}))
      (ask kv "vector_index" "vector_search" (assoc vectors "arguments" {"queryVector" [1.0 0.5]})))
    (stores/close-all!)))

(defn -main [& [mode directory]]
  (let [out (FileOutputStream. FileDescriptor/out)]
    ;; What a library prints must not meet the frames.
    (System/setOut (PrintStream. (FileOutputStream. FileDescriptor/err) true))
    (fence!)
    (planner/correct!)
    (maintenance/open-with-vectors!)
    (if (= mode "train")
      (train directory)
      (serve (FileInputStream. FileDescriptor/in) out))
    (shutdown-agents)
    (.halt (Runtime/getRuntime) 0)))
