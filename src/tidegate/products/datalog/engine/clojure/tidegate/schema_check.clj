(ns tidegate.schema-check
  "Compares a schema that a database is opened with with its facts. Datalevin takes it as it is: facts of
  another type, several of one entity, or one that two have are there then and are not found."
  (:require
   [clojure.set :as set]
   [clojure.string :as str]
   [datalevin.core :as d]
   [datalevin.datom :as dd]
   [tidegate.values :refer [refuse]]))

(def ^:private named-alike
  "Properties that change what is found of facts that are there: all but those that only say something
  of an attribute."
  #{:db/fulltext :db.fulltext/autoDomain :db.fulltext/domains :db.vec/domains :db/domain
    :db/idocFormat :db.idoc/indexedPaths :db.idoc/excludedPaths :db/tupleAttrs :db/tupleType
    :db/tupleTypes :db/index :db/noindex :db/isComponent})

(def ^:private defaults
  {:db/cardinality :db.cardinality/one :db/fulltext false :db/isComponent false :db/index false
   :db/noindex false :db.fulltext/autoDomain false})

(defn- value-of [properties property]
  (let [found (get properties property)]
    (if (nil? found) (get defaults property) found)))

(defn- facts-of [db a] (d/search-datoms db nil a nil))

(defn- seen-twice
  "The first thing that comes twice; nil if there is none."
  [xs]
  (loop [seen #{} left (seq xs)]
    (when-let [[x & more] left]
      (if (contains? seen x) x (recur (conj seen x) more)))))

(defn- contradiction
  "What facts say against one property of an attribute; nil if nothing does."
  [db a now wanted property]
  (let [was (value-of now property) will (value-of wanted property)]
    (when (not= was will)
      (let [facts (delay (facts-of db a))
            some-facts? #(pos? (long (count @facts)))
            shown #(if (nil? %) "none" (pr-str %))]
        (case property
          :db/valueType
          (when (some-facts?)
            (str (count @facts) " facts of it are kept as " (if was (shown was) "values of any type")
                 ", and would not be found as " (shown will)))

          :db/cardinality
          (when (= :db.cardinality/one will)
            (when-let [e (seen-twice (map dd/datom-e @facts))]
              (str "the entity " e " has several values of it")))

          :db/unique
          (when will
            (when-let [x (seen-twice (map dd/datom-v @facts))]
              ;; The value is left out: it may be hidden from the caller.
              (str "two entities have the same value of it, one of them "
                   (dd/datom-e (first (filter #(= x (dd/datom-v %)) @facts))))))

          :db/tupleAttrs
          (let [parts (filter #(seq (d/search-datoms db nil % nil)) (concat was will))]
            (when (or (some-facts?) (seq parts))
              (str "there are facts of " (str/join ", " (distinct (if (seq parts) parts [a])))
                   ", for which no tuple would be made")))

          (when (some-facts?)
            (str (count @facts) " facts of it are there, for which it would not hold")))))))

(defn check
  "Refuse a schema that says of an attribute what its facts contradict. `conn` has the database open as
  it is; a property that the schema does not name stays."
  [conn schema]
  (let [db (d/db conn) known (d/schema conn)]
    (doseq [[a wanted] (sort-by (comp str key) schema)
            :let [now (get known a {})]
            property (sort (set/union #{:db/valueType :db/cardinality :db/unique} named-alike))
            :when (contains? wanted property)
            :let [why (contradiction db a now wanted property)]
            :when why]
      (refuse :invalid-request
              (str "The schema says " property " " (pr-str (get wanted property)) " of " a ", but "
                   why ". Nothing was changed. Leave " property " of " a " as it is, or copy the facts"
                   " to a new database with this schema.")
              {:field "schema"}))
    (doseq [[a wanted] schema
            :when (and (:db/isComponent wanted)
                       (not= :db.type/ref (:db/valueType (merge (get known a) wanted))))]
      (refuse :invalid-request
              (str "The schema says :db/isComponent of " a ", which is no :db.type/ref. Nothing was"
                   " changed.")
              {:field "schema"}))))
